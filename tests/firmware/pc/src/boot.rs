//! From the PVH entry (32-bit protected mode, paging off) to Rust in long
//! mode, with the first GiB mapped one to one and SSE switched on.

use core::arch::global_asm;

global_asm!(
    r#"
    .pushsection .note.pvh, "a", @note
    .align 4
    .long 4
    .long 4
    .long 18                 /* XEN_ELFNOTE_PHYS32_ENTRY */
    .asciz "Xen"
    .long pvh_start
    .popsection

    .pushsection .bss
    .balign 4096
pml4: .skip 4096
pdpt: .skip 4096
    .popsection

    .pushsection .rodata
    .balign 8
gdt:
    .quad 0
    .quad 0x00af9a000000ffff /* 64-bit code */
    .quad 0x00cf92000000ffff /* data */
gdt_pointer:
    .word gdt_pointer - gdt - 1
    .long gdt
    .popsection

    .pushsection .text.boot, "ax"
    .code32
    .globl pvh_start
pvh_start:
    cli
    mov esp, offset stack_top
    mov eax, offset pdpt
    or eax, 3
    mov [pml4], eax
    mov dword ptr [pdpt], 0x83     /* 1 GiB page: present, writable, large */
    mov eax, offset pml4
    mov cr3, eax
    mov eax, cr4
    or eax, 0x620                  /* PAE, OSFXSR, OSXMMEXCPT */
    mov cr4, eax
    mov ecx, 0xc0000080            /* EFER */
    rdmsr
    or eax, 0x100                  /* long mode */
    wrmsr
    mov eax, cr0
    and eax, 0xfffffffb            /* no x87 emulation */
    or eax, 0x80000003             /* paging, monitor coprocessor, protected mode */
    mov cr0, eax
    lgdt [gdt_pointer]
    push 8
    mov eax, offset long_mode
    push eax
    retf
    .code64
long_mode:
    mov ax, 16
    mov ds, ax
    mov es, ax
    mov ss, ax
    mov rsp, offset stack_top
    xor ebp, ebp
    call image_main
2:  hlt
    jmp 2b
    .popsection
    "#
);
