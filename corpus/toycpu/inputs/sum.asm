start: set r2, 0
next: in r1
 jeq end
 add r2, r1
 jump next
end: out r2
 halt
