start:  set r1, msg
        call puts
        jump over
msg:    .text "hello"
over:   set r0, 7
        out r0
        halt
puts:   loadb r0, [r1]
        cmpi r0, 0
        jeq done
        outc r0
        addi r1, 1
        jump puts
done:   set r0, 10
        outc r0
        ret
