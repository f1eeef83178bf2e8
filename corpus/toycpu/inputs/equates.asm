.equ limit 3
start: set r1, 0
loop: out r1
 addi r1, 1
 cmpi r1, limit
 jlt loop
 halt
