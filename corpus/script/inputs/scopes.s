let x = 1;
{ let x = 2; print x; }
print x;
fn f(x) { let y = x + 1; { let z = y * 2; y = z; } return y; }
print f(3);
