// Set before the first paint, so that a chosen theme never flashes: loaded in <head>, not as a module.
document.documentElement.dataset.theme = localStorage.getItem("keisei.theme") ?? "auto";
document.documentElement.dataset.pieces = localStorage.getItem("keisei.pieces") ?? "kanji";
