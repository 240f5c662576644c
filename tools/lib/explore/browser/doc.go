// Package browser tests the explorer in Chromium: that the page opens, that what is chosen in one place is marked in the others, that
// keys and deep links work, that nothing of a model becomes markup, and that large models are there soon. It is a module of its own:
// aton itself needs no browser. The models are made by models.py.
//
// ATON_SCREENSHOTS names a folder for the pictures of docs/explore.md; CHROMIUM the browser, if it is not on PATH.
package browser
