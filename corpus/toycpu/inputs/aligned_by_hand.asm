start: jump go
word: .text "abcd"
.align
go: set r0, 1
 out r0
 halt
