package main
import "fmt"
func   main( ) {
for i:=0;i<3;i++ {
fmt.Println( i,"x" )}
fmt.Printf("%d\n", "not a number")
}
