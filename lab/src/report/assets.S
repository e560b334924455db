# Files that become part of the program, so that it needs none of them at run time.
    .section .rodata
    .global aah_page_html, aah_page_html_end
aah_page_html:
    .incbin "page.html"
aah_page_html_end:
    .global aah_page_js, aah_page_js_end
aah_page_js:
    .incbin "page.js"
aah_page_js_end:
    .global aah_heat_map_js, aah_heat_map_js_end
aah_heat_map_js:
    .incbin "heat_map.js"
aah_heat_map_js_end:
    .global aah_search_js, aah_search_js_end
aah_search_js:
    .incbin "search.js"
aah_search_js_end:
    .global aah_windows_js, aah_windows_js_end
aah_windows_js:
    .incbin "windows.js"
aah_windows_js_end:
    .global aah_plotly_js, aah_plotly_js_end
aah_plotly_js:
    .incbin "plotly.min.js"
aah_plotly_js_end:
    .section .note.GNU-stack, "", %progbits
