start: call show
 halt
name: .text "ab"
show: set r0, 5
 out r0
 ret
