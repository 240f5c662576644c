//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/ebitengine/purego"
)

func load() (*api, error) {
	var first error
	for _, name := range []string{"libcuda.so.1", "libcuda.so"} {
		a, err := loadFrom(name)
		if err == nil {
			return a, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// loadFrom binds the symbols of one library. All that are missing are named at once.
func loadFrom(name string) (*api, error) {
	lib, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("cuda: %w (%w)", ErrNoDriver, err)
	}
	a := new(api)
	v := reflect.ValueOf(a).Elem()
	var missing []string
	for i := range v.NumField() {
		sym := v.Type().Field(i).Tag.Get("cu")
		p, err := purego.Dlsym(lib, sym)
		if err != nil {
			missing = append(missing, sym)
			continue
		}
		purego.RegisterFunc(v.Field(i).Addr().Interface(), p)
	}
	if missing != nil {
		return nil, fmt.Errorf("cuda: %s lacks %s: the driver is too old", name, strings.Join(missing, ", "))
	}
	return a, nil
}
