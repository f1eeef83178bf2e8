start: jump go
word: .text "abc"
go: set r0, 1
 out r0
 halt
