// Renders a chart as Helm does: Go's templates with Sprig and the functions that Helm adds of which the chart makes use.
// It reads {"values": …, "release": …, "namespace": …} and prints a list of documents, in YAML.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type object = map[string]interface{}

func main() {
	if err := render(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(chart string) error {
	var asked struct {
		Values             object
		Release, Namespace string
	}
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return err
	}
	var values, about object
	if err := readYaml(filepath.Join(chart, "values.yaml"), &values); err != nil {
		return err
	}
	if err := readYaml(filepath.Join(chart, "Chart.yaml"), &about); err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return err
	}
	all := template.New("chart").Option("missingkey=zero")
	if _, err := all.Funcs(functions(all)).ParseFiles(paths...); err != nil {
		return err
	}
	scope := object{
		"Values":  merge(values, asked.Values),
		"Release": object{"Name": asked.Release, "Namespace": asked.Namespace, "Service": "Helm"},
		"Chart":   object{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
	}
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "_") {
			continue
		}
		var text strings.Builder
		if err := all.ExecuteTemplate(&text, name, scope); err != nil {
			return err
		}
		fmt.Printf("---\n%s\n", strings.ReplaceAll(text.String(), "<no value>", ""))
	}
	return nil
}

func readYaml(path string, into *object) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(text, into)
}

// What is given wins, object by object.
func merge(base, given object) object {
	for name, value := range given {
		inner, isObject := value.(object)
		below, hasObject := base[name].(object)
		if isObject && hasObject {
			base[name] = merge(below, inner)
		} else {
			base[name] = value
		}
	}
	return base
}

func functions(all *template.Template) template.FuncMap {
	known := sprig.TxtFuncMap()
	known["include"] = func(name string, scope interface{}) (string, error) {
		var text strings.Builder
		err := all.ExecuteTemplate(&text, name, scope)
		return text.String(), err
	}
	known["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, errors.New(message)
		}
		return value, nil
	}
	known["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	return known
}
