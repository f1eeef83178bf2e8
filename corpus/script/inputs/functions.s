fn gcd(a, b) { while b != 0 { let t = a % b; a = b; b = t; } return a; }
print gcd(48, 18), gcd(7, 13);
