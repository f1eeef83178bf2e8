if false; then echo a; elif true; then echo b; else echo c; fi
true && echo yes || echo no
! true || echo never
