start: set r99, 1
 jmp start
start: halt
 jump nowhere
 .word
