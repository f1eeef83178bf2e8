let i = 5;
while i >= 1 {
  print i;
  i = i - 1;
}
print 0 - i;
