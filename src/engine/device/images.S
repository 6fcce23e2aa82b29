// Device images: the fatbins of instances/*.cu as read-only data. Found through the assembler's include path.

.macro talaria_image name
  .hidden talaria_image_\name
  .hidden talaria_image_\name\()_end
  .global talaria_image_\name
  .global talaria_image_\name\()_end
  .balign 64
talaria_image_\name:
  .incbin "\name\().fatbin"
talaria_image_\name\()_end:
.endm

.section .rodata
talaria_image copy
talaria_image int8
talaria_image uint8
talaria_image int32
talaria_image uint32
talaria_image int64
talaria_image uint64
talaria_image float16
talaria_image bfloat16
talaria_image float32
talaria_image float64
talaria_image float8e4m3
talaria_image float8e5m2

.section .note.GNU-stack, "", %progbits
