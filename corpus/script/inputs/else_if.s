let i = 0;
while i < 4 {
  if i == 0 { print 10; } else if i == 1 { print 11; } else { print 12; }
  i = i + 1;
}
