fn prime(n) {
  if n < 2 { return 0; }
  let d = 2;
  while n >= d * d {
    if n % d == 0 { return 0; }
    d = d + 1;
  }
  return 1;
}
let n = 1;
let count = 0;
while n < 60 {
  if prime(n) { count = count + 1; }
  n = n + 1;
}
print count;
