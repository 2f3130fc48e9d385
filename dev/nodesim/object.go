package nodesim

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// newObject makes an empty object of a pointer type.
func newObject[T runtime.Object]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}
