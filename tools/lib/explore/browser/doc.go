// Package browser tests the explorer in Chromium and Firefox: that the page opens, that what is chosen in one place is marked in the others, that
// keys and deep links work, that nothing of a model becomes markup, and that large models are there soon. It is a module of its own:
// aton itself needs no browser. The models are made by models.py.
//
// ATON_SCREENSHOTS names a folder for the pictures of docs/explore.md, ATON_PICTURES one for those of testdata/pictures, and ATON_DIFFERENT one
// for pages that differ from these. CHROMIUM and FIREFOX name the browsers, if they are not on PATH; ATON_AXE is axe-core, ATON_WEB the page that
// converts by itself. Without a Firefox its test is skipped, unless ATON_NEED_FIREFOX is set, as in CI.
package browser
