start: set r1, -4
 load r2, [r1]
 halt
