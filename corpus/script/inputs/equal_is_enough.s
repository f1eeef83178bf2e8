let need = 10;
let have = 10;
if have >= need and not have > need { print 1; } else { print 0; }
