fn f(n) { return f(n + 1); }
print f(0);
