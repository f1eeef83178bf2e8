print 1 and 0, 1 or 0, not 1, 0 or 7, 3 and 4;
