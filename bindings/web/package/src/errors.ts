/** Errors, by who is at fault. No message has a key that was looked up, or a value. */

/** Any error of Privet. */
export class PrivetError extends Error {
    override readonly name: string = "PrivetError";

    /**
     * Whether nobody may try again: another try could show a server what was wanted, or what failed
     * is damaged and stays so.
     */
    get isFinal(): boolean {
        return false;
    }
}

/**
 * The caller asked for something impossible. Nothing was looked up.
 *
 * Except for a key that the table can never have, such as `abc` in a table of addresses. Its lookup
 * was made like any other, so that nobody who listens learns of it.
 */
export class UsageError extends PrivetError {
    override readonly name = "UsageError";
}

/** The other side, or a resource of this machine, is not there now. Trying later may help. */
export class UnavailableError extends PrivetError {
    override readonly name = "UnavailableError";
}

/** Something is used up or full: hints, a size limit, a queue. */
export class ExhaustedError extends PrivetError {
    override readonly name = "ExhaustedError";
}

/** A server broke the protocol. */
export class PeerError extends PrivetError {
    override readonly name = "PeerError";
}

/** A digest, a proof or a signature is wrong: do not trust what came, and do not try again. */
export class IntegrityError extends PrivetError {
    override readonly name = "IntegrityError";

    override get isFinal(): boolean {
        return true;
    }
}

/**
 * A lookup failed for a reason that may depend on its key. Asking again may tell a server something
 * about the key.
 */
export class SelectiveError extends PrivetError {
    override readonly name = "SelectiveError";

    override get isFinal(): boolean {
        return true;
    }
}

/** Something that was kept is damaged. Asking again may reveal the key. */
export class CorruptedError extends PrivetError {
    override readonly name = "CorruptedError";

    override get isFinal(): boolean {
        return true;
    }
}

/** Privet itself is wrong. Please report it. */
export class InternalError extends PrivetError {
    override readonly name = "InternalError";
}

const CLASSES: Record<string, new (message: string) => PrivetError> = {
    "api-misuse": UsageError,
    "invalid-message": PeerError,
    "peer-misbehaved": PeerError,
    integrity: IntegrityError,
    exhausted: ExhaustedError,
    selective: SelectiveError,
    corrupted: CorruptedError,
    unavailable: UnavailableError,
};

/** An error as it comes from the worker: who is to blame, and what happened. */
export interface Failure {
    readonly blame: string;
    readonly message: string;
}

/** The error of its blame. */
export function errorOf(failure: Failure): PrivetError {
    return new (CLASSES[failure.blame] ?? InternalError)(failure.message);
}
