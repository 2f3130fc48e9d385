package nodesim

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// watch calls seen for every change of some objects, in order, until ctx ends:
// with the object before (nil if it is new) and now, or with its last state when
// it is gone. seen must not wait.
func watch[T runtime.Object](ctx context.Context, wg *sync.WaitGroup, client rest.Interface, resource, namespace string, selector fields.Selector, seen func(before, now T, gone bool)) {
	watchLabelled(ctx, wg, client, resource, namespace, selector, "", seen)
}

func watchLabelled[T runtime.Object](ctx context.Context, wg *sync.WaitGroup, client rest.Interface, resource, namespace string, selector fields.Selector, labels string, seen func(before, now T, gone bool)) {
	if selector == nil {
		selector = fields.Everything()
	}
	var none T
	lw := cache.NewFilteredListWatchFromClient(client, resource, namespace, func(o *metav1.ListOptions) {
		o.FieldSelector = selector.String()
		o.LabelSelector = labels
	})
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: lw,
		ObjectType:    newObject[T](),
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) {
				if t, ok := o.(T); ok {
					seen(none, t, false)
				}
			},
			UpdateFunc: func(before, now any) {
				b, _ := before.(T)
				if t, ok := now.(T); ok {
					seen(b, t, false)
				}
			},
			DeleteFunc: func(o any) {
				if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
					o = unknown.Obj
				}
				if t, ok := o.(T); ok {
					seen(none, t, true)
				}
			},
		},
	})
	wg.Go(func() { informer.RunWithContext(ctx) })
}
