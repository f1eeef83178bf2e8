package main

import "fmt"

type item struct {
	next  *item
	value int
}

func find(list *item, value int) *item {
	for list != nil && list.value != value {
		list = list.next
	}
	return list
}

func main() {
	list := &item{&item{nil, 2}, 1}
	fmt.Println("found", find(list, 2).value)
	fmt.Println("found", find(list, 3).value)
}
