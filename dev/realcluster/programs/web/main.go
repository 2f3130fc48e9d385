// Command web is the workload of the end-to-end tests, and its client.
//
//	web serve          answers every request until it is told to end, and three seconds longer
//	web ask URL FILE   asks URL ten times a second and answers itself with what came of it; FILE keeps
//	                   the counts over a restart
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

const address = ":8080"

func main() {
	args := append(os.Args[1:], "", "", "")
	var err error
	switch args[0] {
	case "serve":
		err = serve()
	case "ask":
		err = ask(args[1], args[2])
	default:
		err = fmt.Errorf("unknown command %q", args[0])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "web:", err)
		os.Exit(1)
	}
}

// last is how long a server that is told to end still answers: until all nodes know that it goes.
const last = 3 * time.Second

func serve() error {
	s := &http.Server{Addr: address, ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, os.Getenv("POD_NAME"), os.Getenv("NODE_NAME"))
	})}
	told, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	failed := make(chan error, 1)
	go func() { failed <- s.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-told.Done():
	}
	time.Sleep(last)
	ctx, cancel := context.WithTimeout(context.Background(), last)
	defer cancel()
	return s.Shutdown(ctx)
}

// counts are what a client saw since its pod was made.
type counts struct {
	// Asked is how many requests were made, Failed how many of them had no good answer.
	Asked, Failed int
	// Starts is how often the client's process began.
	Starts int
	// Errors are the first of the failures, with their times.
	Errors []string
}

const (
	every = 100 * time.Millisecond
	// setup is for how long a refused or unanswered connection is tried again.
	setup = time.Second
	// answered is how long an answer may take once there is a connection.
	answered = 3 * time.Second
	kept     = 20
)

func ask(url, file string) error {
	var mu sync.Mutex
	var c counts
	if b, err := os.ReadFile(file); err == nil {
		// A file that was cut short by a power cut says nothing; the counts begin anew.
		_ = json.Unmarshal(b, &c)
	}
	c.Starts++
	go func() {
		client := &http.Client{Timeout: setup + answered, Transport: &http.Transport{DialContext: patient, DisableKeepAlives: true}}
		// A node that has just booted learns of Services after its first pods: from the first answer on
		// everything counts.
		for get(client, url) != nil {
			time.Sleep(every)
		}
		for {
			err := get(client, url)
			mu.Lock()
			c.Asked++
			if err != nil {
				c.Failed++
				if len(c.Errors) < kept {
					c.Errors = append(c.Errors, time.Now().UTC().Format(time.RFC3339Nano)+" "+err.Error())
				}
			}
			if err != nil || c.Asked%10 == 0 {
				keep(file, c)
			}
			mu.Unlock()
			time.Sleep(every)
		}
	}()
	s := &http.Server{Addr: address, ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_ = json.NewEncoder(w).Encode(c)
	})}
	return s.ListenAndServe()
}

// keep writes the counts so that a cut leaves the old ones or the new ones.
func keep(file string, c counts) {
	b, err := json.Marshal(c)
	if err != nil {
		return
	}
	if os.WriteFile(file+".new", b, 0o600) == nil {
		_ = os.Rename(file+".new", file)
	}
}

func patient(ctx context.Context, network, address string) (net.Conn, error) {
	end := time.Now().Add(setup)
	for {
		d := net.Dialer{Timeout: time.Until(end)}
		c, err := d.DialContext(ctx, network, address)
		if err == nil || !time.Now().Before(end) {
			return c, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func get(client *http.Client, url string) error {
	r, err := client.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", r.Status)
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err
}
