start: set r1, 17
 set r2, -5
 move r3, r1
 div r1, r2
 mod r3, r2
 out r1
 out r3
 set r2, 0
 div r1, r2
 halt
