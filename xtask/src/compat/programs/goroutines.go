package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"
)

type node struct {
	left, right *node
	data        [32]byte
}

func tree(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{left: tree(depth - 1), right: tree(depth - 1)}
}

func (n *node) count() int {
	if n.left == nil {
		return 1
	}
	return 1 + n.left.count() + n.right.count()
}

func spin(n int) int {
	x := 0
	for i := 0; i < n; i++ {
		x = x*31 + i
	}
	return x
}

func main() {
	var wait sync.WaitGroup
	results := make(chan int, 4)
	for i := 0; i < 50; i++ {
		wait.Add(1)
		go func(i int) {
			defer wait.Done()
			results <- i * i
		}(i)
	}
	go func() { wait.Wait(); close(results) }()
	sum := 0
	for r := range results {
		sum += r
	}
	fmt.Println("sum", sum)
	total := 0
	for i := 0; i < 10; i++ {
		total += tree(14).count()
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Println("nodes", total, "collected", m.NumGC > 0)
	done := make(chan bool)
	go func() { spin(200000000); done <- true }()
	ticks := 0
	ticker := time.NewTicker(5 * time.Millisecond)
loop:
	for {
		select {
		case <-ticker.C:
			ticks++
		case <-done:
			break loop
		}
	}
	fmt.Println("ticked", ticks > 0)
	func() {
		defer func() { fmt.Println("recovered:", recover()) }()
		var m map[string]int
		m["x"] = 1
	}()
	func() {
		defer func() { fmt.Println("recovered:", recover()) }()
		var n *node
		fmt.Println(n.data[3])
	}()
	select {
	case <-time.After(20 * time.Millisecond):
		fmt.Println("timeout")
	}
}
