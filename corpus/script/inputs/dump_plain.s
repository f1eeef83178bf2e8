fn f(a) { return a + 1; }
print f(2);
