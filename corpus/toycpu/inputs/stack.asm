start: set r1, 1
 push r1
 set r1, 2
 push r1
 pop r2
 pop r3
 out r2
 out r3
 halt
