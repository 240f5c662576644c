package driver

import "unsafe"

// api is the part of the CUDA driver that is used, one field for each symbol. Results are CUresult: 0 is success.
// Handles and device addresses are integers of pointer size.
type api struct {
	Init             func(flags uint32) int32                                                                                                          `cu:"cuInit"`
	Version          func(version *int32) int32                                                                                                        `cu:"cuDriverGetVersion"`
	DeviceCount      func(count *int32) int32                                                                                                          `cu:"cuDeviceGetCount"`
	DeviceGet        func(device *int32, ordinal int32) int32                                                                                          `cu:"cuDeviceGet"`
	DeviceName       func(name *byte, size int32, device int32) int32                                                                                  `cu:"cuDeviceGetName"`
	DeviceAttribute  func(value *int32, attribute, device int32) int32                                                                                 `cu:"cuDeviceGetAttribute"`
	PrimaryRetain    func(ctx *uintptr, device int32) int32                                                                                            `cu:"cuDevicePrimaryCtxRetain"`
	PrimaryRelease   func(device int32) int32                                                                                                          `cu:"cuDevicePrimaryCtxRelease_v2"`
	CtxSetCurrent    func(ctx uintptr) int32                                                                                                           `cu:"cuCtxSetCurrent"`
	CtxSynchronize   func() int32                                                                                                                      `cu:"cuCtxSynchronize"`
	ModuleLoad       func(module *uintptr, image *byte, n uint32, options *int32, values *uintptr) int32                                               `cu:"cuModuleLoadDataEx"`
	ModuleUnload     func(module uintptr) int32                                                                                                        `cu:"cuModuleUnload"`
	ModuleFunction   func(function *uintptr, module uintptr, name *byte) int32                                                                         `cu:"cuModuleGetFunction"`
	FuncSetAttribute func(function uintptr, attribute, value int32) int32                                                                              `cu:"cuFuncSetAttribute"`
	FuncGetAttribute func(value *int32, attribute int32, function uintptr) int32                                                                       `cu:"cuFuncGetAttribute"`
	MemAlloc         func(address *uintptr, size uintptr) int32                                                                                        `cu:"cuMemAlloc_v2"`
	MemFree          func(address uintptr) int32                                                                                                       `cu:"cuMemFree_v2"`
	MemSet           func(address uintptr, value uint8, size uintptr) int32                                                                            `cu:"cuMemsetD8_v2"`
	Upload           func(to uintptr, from *byte, size uintptr) int32                                                                                  `cu:"cuMemcpyHtoD_v2"`
	Download         func(to *byte, from uintptr, size uintptr) int32                                                                                  `cu:"cuMemcpyDtoH_v2"`
	Launch           func(function uintptr, gx, gy, gz, bx, by, bz, shared uint32, stream uintptr, params *unsafe.Pointer, extra unsafe.Pointer) int32 `cu:"cuLaunchKernel"`
	EventCreate      func(event *uintptr, flags uint32) int32                                                                                          `cu:"cuEventCreate"`
	EventDestroy     func(event uintptr) int32                                                                                                         `cu:"cuEventDestroy_v2"`
	EventRecord      func(event, stream uintptr) int32                                                                                                 `cu:"cuEventRecord"`
	EventSynchronize func(event uintptr) int32                                                                                                         `cu:"cuEventSynchronize"`
	EventElapsed     func(milliseconds *float32, from, to uintptr) int32                                                                               `cu:"cuEventElapsedTime"`
	ErrorName        func(result int32, name **byte) int32                                                                                             `cu:"cuGetErrorName"`
	ErrorString      func(result int32, text **byte) int32                                                                                             `cu:"cuGetErrorString"`
}

// numbers of the driver's interface
const (
	attrMajor        = 75
	attrMinor        = 76
	attrMultiproc    = 16
	attrSharedOptin  = 97
	attrClockKHz     = 13
	funcMaxDynamic   = 8
	funcRegisters    = 4
	funcLocal        = 3
	jitInfoBuffer    = 3
	jitInfoSize      = 4
	jitErrorBuffer   = 5
	jitErrorSize     = 6
	jitLogBytes      = 16 << 10
	defaultShared    = 48 << 10
	maxKernelParams  = 4096
	deviceNameLength = 256
)
