jump main
table: .byte 3, 1, 4, 1, 5
main: set r1, table
 set r2, 0
 set r3, 5
loop: loadb r4, [r1]
 add r2, r4
 addi r1, 1
 addi r3, -1
 cmpi r3, 0
 jne loop
 out r2
 halt
