print y;
