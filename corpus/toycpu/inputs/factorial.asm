start: set r1, 6
 call fact
 out r0
 halt
fact: cmpi r1, 2
 jge more
 set r0, 1
 ret
more: push r1
 addi r1, -1
 call fact
 pop r1
 mul r0, r1
 ret
