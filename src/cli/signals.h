/* signals.h - a command that catches signals, whatever it waits for. */
#ifndef TOKMAP_CLI_SIGNALS_H
#define TOKMAP_CLI_SIGNALS_H

/* Catches signals as os_signals_catch() (process.h) does. A signal then also ends a wait for whatever reads standard
 * output, and the write fails. A command calls this before it prints anything. */
void cli_signals_catch(void);

#endif
