package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// figures holds the fields of one answer in the order they are printed.
type figures []figure

type figure struct {
	name  string
	value any
}

// sum is a 64-bit sum; as text, since not every reader of JSON keeps so many digits.
func sum(value uint64) string {
	return strconv.FormatUint(value, 10)
}

// rounded keeps three decimals.
func rounded(value float64) float64 {
	return math.Round(value*1000) / 1000
}

func (f figures) json() string {
	var fields []string
	for _, field := range f {
		value, err := json.Marshal(field.value)
		must(err)
		fields = append(fields, fmt.Sprintf("%q: %s", field.name, value))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// line is for people: of quantiles it shows some.
func (f figures) line() string {
	var fields []string
	for _, field := range f {
		text := fmt.Sprint(field.value)
		if q, ok := field.value.([]float64); ok {
			text = fmt.Sprintf("%v least %v median %v 99%% %v most", q[0], q[500], q[990], q[1000])
		}
		fields = append(fields, field.name+" "+text)
	}
	return strings.Join(fields, ", ")
}
