/** What the package is to a program in TypeScript: it compiles, with `strict`. */

import {
    Answer,
    Client,
    connect,
    IntegrityError,
    PrivetError,
    Value,
    type Progress,
} from "@privet/client";

export async function usage(signal: AbortSignal): Promise<void> {
    const told: Progress[] = [];
    const client: Client = await connect(["https://a.example", "https://b.example"], {
        table: "packages",
        maxDownload: 64 << 20,
        onProgress: (progress) => told.push(progress),
        signal,
    });
    const value: Value | undefined = await client.get("openssl", { signal });
    const text: string | undefined = value?.text;
    const answers: Answer[] = await client.getMany(["a", Uint8Array.of(1), 7], { padTo: 64 });
    for await (const { key, found, error } of client.answers(new Set(["a"]))) {
        const isFinal: boolean = error instanceof PrivetError && error.isFinal;
        console.log(key, found, isFinal, error instanceof IntegrityError);
    }
    const scheme: string = client.scheme;
    const bytes: number = (await client.stats()).lookupSent + (await client.refresh());
    console.log(text, answers.length, scheme, bytes, told.length);
    // @ts-expect-error: a key is text, bytes or a number.
    await client.get({});
    await client.close();
}
