fn grade(points) {
  if points >= 90 { return 1; }
  if points >= 75 { return 2; }
  return 3;
}
print grade(95), grade(90), grade(75), grade(10);
