let x 3;
