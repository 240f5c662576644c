package cmd

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestVerifyProve(t *testing.T) {
	t.Run("no solver", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if text, err := runVerify(t, &verifier{}, convnet, "--data", convnetData, "--input", convnetType, "--prove"); err == nil || !strings.Contains(err.Error(), "z3 is not installed (apt-get install z3)") {
			t.Errorf("%v\n%s", err, text)
		}
	})
	if text, err := runVerify(t, &verifier{}, convnet, "--data", convnetData, "--input", convnetType, "--limit", "1s"); err == nil {
		t.Errorf("--limit alone is taken: %s", text)
	}
	if _, err := exec.LookPath("z3"); err != nil {
		if os.Getenv("ATON_NEED_Z3") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	text, err := runVerify(t, &verifier{}, convnet, "--data", convnetData, "--input", convnetType, "--prove")
	if err != nil || !strings.Contains(text, "proof: 1 of 1 equations of the passes are proved (1 on real numbers)") {
		t.Errorf("%v\n%s", err, text)
	}
	text, err = runVerify(t, &verifier{}, convnet, "--input", convnetType, "--prove", "--json")
	var r report
	if err != nil || json.Unmarshal([]byte(text), &r) != nil || r.Proof == nil || r.Proof.Proved != 1 || r.Proof.Certain != r.Proof.Values || len(r.Outputs) == 0 {
		t.Errorf("%v\n%s", err, text)
	}
}
