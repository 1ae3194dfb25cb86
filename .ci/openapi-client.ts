// A client that compiles only if the types of the API say what they should.
import type { components, operations, paths } from "./api.js";

type Run = components["schemas"]["RunItem"];
type Pending = components["schemas"]["PendingItem"];
type Problem = components["schemas"]["Problem"];
type Decision = operations["post_runs_run_calls_id_decision"]["requestBody"]["content"]["application/json"];
type Runs = paths["/api/v1/runs"]["get"]["responses"][200]["content"]["application/json"];

async function request<T>(path: string, init: RequestInit = {}): Promise<T> {
    const response = await fetch(`/api/v1${path}`, init);
    if (!response.ok) {
        const problem = (await response.json()) as Problem;
        throw new Error(`${problem.type}: ${problem.detail ?? problem.title}`);
    }
    return (await response.json()) as T;
}

/** Approves everything that waits in the runs that wait for a person. */
export async function approveAll(): Promise<string[]> {
    const query: NonNullable<paths["/api/v1/runs"]["get"]["parameters"]["query"]> = { needs: "decision", limit: 50 };
    const runs = await request<Runs>(`/runs?${new URLSearchParams({ needs: query.needs ?? "", limit: `${query.limit}` })}`);
    const decided: string[] = [];
    for (const run of runs.items satisfies Run[]) {
        const waiting = await request<{ items: Pending[]; next: string | null }>(`/pending?run=${run.id}`);
        for (const item of waiting.items.filter((item) => item.kind === "approval" && item.allowed.allowed)) {
            const decision: Decision = { approve: true };
            const body = JSON.stringify(decision);
            const headers = { "Content-Type": "application/json", "Idempotency-Key": item.id };
            await request(`/runs/${run.id}/calls/${item.id}/decision`, { method: "POST", headers, body });
            decided.push(`${run.brain}: ${item.tool} since ${item.since}`);
        }
    }
    return decided;
}
