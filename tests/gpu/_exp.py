import sys; sys.path[:0]=['.','tests/gpu']
import handmade, torch, time, ctypes, gc
k=handmade.add(); a=torch.randn(1024,device='cuda'); b=a.clone(); k(a,b)
L=k.launcher; args=(a,b)
gc.disable()
def T(name,f,n=300):
    f(); torch.cuda.synchronize(); r=[]
    for _ in range(25):
        t=time.perf_counter()
        for _ in range(n): f()
        r.append((time.perf_counter()-t)/n*1e6); torch.cuda.synchronize()
    print(name, round(sorted(r)[12],2), round(min(r),2))
run=next(iter(L._plans.values())); cells=dict(zip(run.__code__.co_freevars,[c.cell_contents for c in run.__closure__]))
rec=next(iter(cells['records'].values())); E=cells['empty']
cfg,fn,pr=rec.launches[0]
drv=L._loaded[(0,True)].driver
vp=ctypes.c_void_p
old=drv._library['cuLaunchKernel']
ab=ctypes.CDLL(None)['abs']
keep=[E((1024,),(1,),torch.float32) for _ in range(64)]
for _ in range(2):
    T('nop',lambda:None)
    T('empty',lambda:E((1024,),(1,),torch.float32))
    T('torch.empty',lambda:torch.empty((1024,),dtype=torch.float32,device='cuda'))
    T('key',lambda:L._key(args))
    T('launchEx',lambda:drv.launch(cfg,fn,pr,None))
    T('launch11',lambda:old(fn,8,1,1,128,1,1,0,vp(0),pr,None))
    T('ctypes4',lambda:ab(cfg,fn,pr,None))
    T('_launch',lambda:cells['launch'](rec.launches))
    T('run',lambda:run(args)); T('quick',lambda:L.quick(args)); T('call',lambda:k(a,b)); T('a.add_',lambda:a.add_(1)); T('torch.add',lambda:torch.add(a,b))
s=torch.cuda.Stream()
with torch.cuda.stream(s): T('call on side stream',lambda:k(a,b))
try:
    from torch._C._dynamo import guards
    T('torch._C._cuda_getCurrentRawStream',lambda:torch._C._cuda_getCurrentRawStream(0))
except Exception as e: print(e)
