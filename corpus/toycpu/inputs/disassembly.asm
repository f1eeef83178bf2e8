start: set r1, -5
 load r2, [r1 + 8]
 jump start
 add r3, r4
 push sp
 ret
.word 0xff000000
