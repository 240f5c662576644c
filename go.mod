module github.com/aton-project/aton

go 1.26
