// Package align puts two lists beside each other.
package align

// maxTable bounds the table that Common fills.
const maxTable = 4 << 20

// Common returns the positions of a longest common subsequence of two lists, rising in both. ok is false where the lists are too long for it:
// it takes time and memory in proportion to the product of their lengths.
func Common[T comparable](a, b []T) (pairs [][2]int, ok bool) {
	n := len(b) + 1
	if (len(a)+1)*n > maxTable {
		return nil, false
	}
	// table[i*n+j] is the length of the longest common subsequence of a[i:] and b[j:]
	table := make([]int32, (len(a)+1)*n)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				table[i*n+j] = table[(i+1)*n+j+1] + 1
			} else {
				table[i*n+j] = max(table[(i+1)*n+j], table[i*n+j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			pairs = append(pairs, [2]int{i, j})
			i++
			j++
		case table[(i+1)*n+j] >= table[i*n+j+1]:
			i++
		default:
			j++
		}
	}
	return pairs, true
}
