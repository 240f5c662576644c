// Package onnxpb holds the protobuf messages of the ONNX format, generated from
// onnx.proto, which is written from the public field numbers (IR version 14).
//
// To generate it, with protoc on PATH (Debian: protobuf-compiler):
//
//	go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
//	make proto
package onnxpb
