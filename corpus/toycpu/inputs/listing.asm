start: set r0, 1
 halt
end: .byte 1, 2, 3
last: halt
