one
2
three
end
