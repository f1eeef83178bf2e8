start: set r1, 3
 high r1, 2
 move r4, r1
 shr r4, r1
 xor r5, r4
 halt
