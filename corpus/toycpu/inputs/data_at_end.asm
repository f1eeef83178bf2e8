start: set r1, numbers
 load r2, [r1 + 4]
 out r2
 store r2, [r1]
 load r3, [r1]
 add r3, r2
 out r3
 halt
numbers: .word 10, 20, 30
